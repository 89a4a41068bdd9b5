-- Gives a lease back, if it is the newest.
--
-- KEYS  1 the session's lease
-- ARGV  1 the number of the lease  2 its owner
local held = redis.call('HMGET', KEYS[1], 'fence', 'owner')
if held[1] == ARGV[1] and held[2] == ARGV[2] then
  redis.call('HSET', KEYS[1], 'released', '1')
end
return {'ok'}

-- Takes a session, unless somebody else has it, or by force.
--
-- KEYS  1 the session's lease
-- ARGV  1 who takes it  2 for how many milliseconds  3 whether by force: 1 or 0
--
-- Answers what came of it:  ok, the number of the lease, when it runs out
--                           held, by whom, until when
local held = redis.call('HMGET', KEYS[1], 'owner', 'expires_at', 'released')
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
if ARGV[3] == '0' and held[3] == '0' and held[1] ~= ARGV[1] and tonumber(held[2]) > now then
  return {'held', held[1], held[2]}
end
local fence = redis.call('HINCRBY', KEYS[1], 'fence', 1)
local expires_at = string.format('%.0f', now + tonumber(ARGV[2]))
redis.call('HSET', KEYS[1], 'owner', ARGV[1], 'expires_at', expires_at, 'released', '0')
return {'ok', string.format('%.0f', fence), expires_at}

-- Makes a lease last longer, if it is the newest and was not given back.
--
-- KEYS  1 the session's lease
-- ARGV  1 the number of the lease  2 its owner  3 for how many milliseconds
--
-- Answers what came of it:  ok, when it runs out
--                           fenced
local held = redis.call('HMGET', KEYS[1], 'fence', 'owner', 'released')
if held[1] ~= ARGV[1] or held[2] ~= ARGV[2] or held[3] ~= '0' then
  return {'fenced'}
end
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local expires_at = string.format('%.0f', now + tonumber(ARGV[3]))
redis.call('HSET', KEYS[1], 'expires_at', expires_at)
return {'ok', expires_at}

-- Reads a value.
--
-- KEYS  1 the value
--
-- Answers its version, its text, and the time in milliseconds.
local value = redis.call('HMGET', KEYS[1], 'version', 'text')
local time = redis.call('TIME')
return {value[1] or '0', value[2] or '', string.format('%.0f', time[1] * 1000 + math.floor(time[2] / 1000))}

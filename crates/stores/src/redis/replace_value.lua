-- Replaces a version of a value by the next one.
--
-- KEYS  1 the value
-- ARGV  1 the version that it has, 0 for none  2 its next text
--
-- Answers what came of it:  ok
--                           changed: it has another version
if (redis.call('HGET', KEYS[1], 'version') or '0') ~= ARGV[1] then
  return {'changed'}
end
redis.call('HINCRBY', KEYS[1], 'version', 1)
redis.call('HSET', KEYS[1], 'text', ARGV[2])
return {'ok'}

-- Says that what is stored is of the next version, if nobody else has.
--
-- KEYS  1 the version
-- ARGV  1 what it was  2 what it is now
if (redis.call('GET', KEYS[1]) or '0') == ARGV[1] then
  redis.call('SET', KEYS[1], ARGV[2])
end
return {'ok'}

-- Removes a part of a session.
--
-- KEYS  1 the part's info  2 its entries  3 its uuids  4 the names of the session's parts
-- ARGV  1 the name of the part
redis.call('UNLINK', KEYS[1], KEYS[2], KEYS[3])
redis.call('SREM', KEYS[4], ARGV[1])
return {'ok'}

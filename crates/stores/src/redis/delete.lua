-- Removes a session with its parts, if these are all that it has. Its lease stays, since its number must not be used again.
--
-- KEYS  1 the session's info  2 its entries  3 its uuids  4 the names of its parts  then info, entries and uuids of each part
-- ARGV  the names of the parts
--
-- Answers what came of it:  ok, the name of the session's first append
--                           changed
if redis.call('SCARD', KEYS[4]) ~= #ARGV then
  return {'changed'}
end
for _, part in ipairs(ARGV) do
  if redis.call('SISMEMBER', KEYS[4], part) == 0 then
    return {'changed'}
  end
end
local born = redis.call('HGET', KEYS[1], 'born') or ''
for _, key in ipairs(KEYS) do
  redis.call('UNLINK', key)
end
return {'ok', born}

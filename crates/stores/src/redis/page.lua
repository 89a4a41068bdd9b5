-- Reads a piece of a transcript: about as much as is asked for, and one entry at least.
--
-- KEYS  1 the transcript's info  2 its entries
-- ARGV  1 how many entries are known already  2 how many bytes are enough
--
-- Answers the name of the transcript's first append, and the entries; nothing if there is no transcript.
local at, enough = tonumber(ARGV[1]), tonumber(ARGV[2])
local page = {redis.call('HGET', KEYS[1], 'born') or nil}
if #page == 0 then
  return page
end
-- It is not known how large they are, so it begins with few.
local bytes, step = 0, 1
repeat
  local some = redis.call('LRANGE', KEYS[2], at, at + step - 1)
  for _, entry in ipairs(some) do
    bytes = bytes + #entry
    page[#page + 1] = entry
  end
  at = at + #some
  local is_last = #some < step
  step = math.min(step * 2, 64)
until is_last or bytes >= enough
return page

-- Adds entries to a transcript: all of them, or none.
--
-- KEYS  1 the session's lease  2 the transcript's info  3 its entries  4 its uuids  5 the names of the session's parts
-- ARGV  1 the number and 2 the owner of the lease, empty where none is asked for
--       3 a name for this append, of which there is no other  4 the name of the append that the summary was made after
--       5 the summary to be  6 the name of the part, empty for the session itself  then uuid (or nothing) and entry, in turns
--
-- Answers what came of it:  ok, the name of the transcript's first append
--                           fenced
--                           changed, the newest append's name, the summary, and for each entry whether its uuid is there
local fence, owner, name, before, summary, part = unpack(ARGV, 1, 6)
local lease, info, entries, uuids, parts = unpack(KEYS)
if fence ~= '' then
  local held = redis.call('HMGET', lease, 'fence', 'owner', 'released')
  if held[1] ~= fence or held[2] ~= owner or held[3] ~= '0' then
    return {'fenced'}
  end
end

local known = redis.call('HMGET', info, 'born', 'appends', 'mtime', 'summary')
local born, appends = known[1] or '', known[2] or ''
-- It has been done, but whoever sent it got no answer and sent it again.
if string.find(appends, name, 1, true) then
  return {'ok', born}
end

if part == '' then
  local newest = string.sub(appends, 1, #name)
  local has_changed, present = before ~= newest, {}
  for i = 7, #ARGV, 2 do
    local is_there = ARGV[i] ~= '' and redis.call('SISMEMBER', uuids, ARGV[i]) == 1
    has_changed = has_changed or is_there
    present[#present + 1] = is_there and '1' or '0'
  end
  if has_changed then
    return {'changed', newest, known[4] or '', table.concat(present)}
  end
end

local has_added = false
for i = 7, #ARGV, 2 do
  if ARGV[i] == '' or redis.call('SADD', uuids, ARGV[i]) == 1 then
    redis.call('RPUSH', entries, ARGV[i + 1])
    has_added = true
  end
end
if not has_added then
  return {'ok', born}
end
if born == '' then
  born = name
  redis.call('HSET', info, 'born', born)
end
-- A clock that was set back must not make a session older.
local time = redis.call('TIME')
local mtime = math.max(time[1] * 1000 + math.floor(time[2] / 1000), (tonumber(known[3]) or 0) + 1)
appends = name .. string.sub(appends, 1, 7 * #name)
redis.call('HSET', info, 'appends', appends, 'mtime', string.format('%.0f', mtime))
if part == '' then
  redis.call('HSET', info, 'summary', summary)
else
  redis.call('SADD', parts, part)
end
return {'ok', born}

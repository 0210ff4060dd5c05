#!lua flags=allow-oom
-- Gives a session up until a call is answered, a stop comes, mail comes that it takes in, or the time has come.
-- A: session, fence, waits (ids), untilMs, file, ids (inbound keys of the turn), takesMail, leaseMs
-- Returns {'lost'} | {'ready'} | {'parked', wakes}
local s = A.session
local held = holds(s, A.fence)
if held == 'lost' then return { 'lost' } end
if held == 'left' then return { 'parked', wakes } end
for _, id in ipairs(A.waits) do
  if redis.call('EXISTS', key('answer', s .. ':' .. id)) == 1 then return { 'ready' } end
end
local newest = 0
for _, id in ipairs(A.ids) do
  local e = find(s, id)
  if e and isStopped(s, e) then return { 'ready' } end
  newest = math.max(newest, e and e.n or 0)
end
if A.takesMail and redis.call('ZCOUNT', key('mailbox', s), '(' .. int(newest), '+inf') > 0 then return { 'ready' } end
setFile(s, A.file)
set(s, 'st', 'parked', 'pk', table.concat(A.waits, ' '))
redis.call('ZADD', key('parked'), int(A.untilMs), s)
leave(s)
return { 'parked', wakes }

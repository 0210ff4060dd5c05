#!lua flags=allow-oom
-- Ends messages: they leave the mailbox, their answers go out, their results stand; then the next one, or idle.
-- A: session, fence, settled [{id, result}], outgoing, file, stay, honoursStop, leaseMs
-- Returns {'lost'} | {'stopped'} | {'left'} | {'idle', wakes} | {'stay', wakes} | {'next', wakes, entries (one with its fragments)}
local s = A.session
local held = holds(s, A.fence)
if held == 'lost' then return { 'lost' } end
if held == 'left' then return { 'left' } end
local gone = {}
for _, done in ipairs(A.settled) do
  local e = find(s, done.id)
  if e and not A.honoursStop and isStopped(s, e) then return { 'stopped' } end
  gone[#gone + 1] = e
end
-- The freeing write comes first.
for _, e in ipairs(gone) do redis.call('ZREMRANGEBYSCORE', key('mailbox', s), int(e.n), int(e.n)) end
for _, done in ipairs(A.settled) do setResult(done.id, done.result) end
sendAll(A.outgoing)
setFile(s, A.file)
-- An answer ends the stream that showed it.
if #A.settled > 0 then redis.call('HDEL', session(s), 'os') end
if A.stay then return { 'stay', wakes } end
if redis.call('ZCARD', key('mailbox', s)) == 0 then
  becomeIdle(s)
  return { 'idle', wakes }
end
return { 'next', wakes, handOver(s) }

#!lua flags=allow-oom
-- Puts out what happens during a turn. An emission that was seen (its reply was lost) is not repeated.
-- A: session, fence, batch (number), outgoing, openStream (JSON text or '')
-- Returns {'lost'} | {'ok', wakes}
local s = A.session
if holds(s, A.fence) ~= 'held' then return { 'lost' } end
if A.batch <= (tonumber(redis.call('HGET', session(s), 'eb')) or 0) then return { 'ok', wakes } end
sendAll(A.outgoing)
set(s, 'eb', int(A.batch))
if A.openStream == '' then redis.call('HDEL', session(s), 'os') else set(s, 'os', A.openStream) end
return { 'ok', wakes }

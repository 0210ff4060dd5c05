#!lua flags=allow-oom
-- Raises a holder's fence above one found in the session file.
-- A: session, fence, atLeast
-- Returns {'lost'} | {'ok', fence}
local fence = math.max(A.fence, A.atLeast)
if holds(A.session, A.fence) ~= 'held' and holds(A.session, fence) ~= 'held' then return { 'lost' } end
set(A.session, 'f', int(fence))
return { 'ok', int(fence) }

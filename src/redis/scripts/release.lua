#!lua flags=allow-oom
-- Gives a session back after work without a message (or when nothing was left to do).
-- A: session, fence, file (null: none is known any more), leaseMs
-- Returns {'lost'} | {'ok', wakes}
local s = A.session
local held = holds(s, A.fence)
if held == 'lost' then return { 'lost' } end
if held == 'left' then return { 'ok', formerWakes(s) } end
redis.call('HDEL', session(s), 'file')
setFile(s, A.file)
giveBack(s, 0)
return { 'ok', wakes }

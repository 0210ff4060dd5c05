#!lua flags=allow-oom
-- Gives a scheduled session whose job is gone a new wake number.
-- A: session, wake
-- Returns {wakes}
local h = get(A.session, 'st', 'w')
if h[1] == 'sched' and tonumber(h[2]) == A.wake then wake(A.session, 0) end
return { wakes }

#!lua flags=allow-oom
-- The state of a session.
-- A: session
-- Returns {state, wake, delayMs}
local h = get(A.session, 'st', 'w', 'due')
return { h[1] or 'idle', h[2] or '0', int(math.max(0, (tonumber(h[3]) or 0) - nowMs)) }

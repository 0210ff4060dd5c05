#!lua flags=allow-oom
-- Stores the answer to a parked call, whatever the session's state, and wakes the session if it waits for it.
-- A: session, wait, payload
-- Returns {wakes}
answer(A.session, A.wait, A.payload)
return { wakes }

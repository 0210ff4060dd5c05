#!lua flags=allow-oom
-- Sends without a lease, each id once: answers to commands that go round the queue.
-- A: outgoing, leaseMs
-- Returns {wakes}
sendAll(A.outgoing)
return { wakes }

/**
 * Parses `NANOGATE_FAULT`, by which a test names the place where the process shall end or stop, as in
 * `kill:settle.before#2`. It carries nothing out. Invariant: a text that is not understood is an error, never ignored.
 */
import { NanogateError } from "../errors.js";
import { FAULT_POINTS, type Fault } from "../faults.js";

/** The fault that a text names. Throws `CONFIG_INVALID`. */
export function parseFault(text: string): Fault {
  const [, action, name, count] = /^(kill|stop):([a-z.]+)(?:#([1-9]\d{0,8}))?$/.exec(text) ?? [];
  const point = FAULT_POINTS.find((known) => known === name);
  if (point === undefined || (action !== "kill" && action !== "stop")) {
    const allowed = `kill:POINT, stop:POINT or kill:POINT#N, with POINT one of ${FAULT_POINTS.join(", ")}`;
    throw new NanogateError("CONFIG_INVALID", `NANOGATE_FAULT is not understood; allowed is ${allowed}`);
  }
  return { action, point, nth: Number(count ?? "1") };
}

/**
 * Keeps characters whole that a stream tore in two. It holds one half at most and knows nothing of the stream.
 * Invariant: joined, what comes out is what went in, up to a half that never got its other half.
 */

/** Holds back a first half of a surrogate pair until its second half is there. */
export function createPairKeeper(): (text: string) => string {
  let held = "";
  return (text) => {
    const whole = held + text;
    const last = whole.charCodeAt(whole.length - 1);
    held = last >= 0xd800 && last <= 0xdbff ? whole.slice(-1) : "";
    return held === "" ? whole : whole.slice(0, -1);
  };
}

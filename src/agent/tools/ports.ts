/**
 * What the tools need from outside: a judge of paths. Implemented by the workspace, handed in by whoever makes the tools.
 * Types only.
 */

/** Decides which paths a tool may touch. */
export interface PathGuard {
  /**
   * The real, absolute path of `path` (relative ones start at the workspace's root), also when it does not exist yet.
   * Throws an Error whose message tells the model what is wrong, when the path leads outside.
   */
  resolveInside(path: string): Promise<string>;
  /** The same for reading alone: files that people sent may be read where they are kept, too. */
  resolveReadable(path: string): Promise<string>;
}

/** What every command may be given. Types only. */
export interface CommonOptions {
  config?: string;
  workspace?: string;
}

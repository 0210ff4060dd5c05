/** What commands may be given. Types only. */
export interface CommonOptions {
  config?: string;
  workspace?: string;
}

/** Options of a command that a person might script. */
export interface AnswerOptions extends CommonOptions {
  json?: boolean;
}

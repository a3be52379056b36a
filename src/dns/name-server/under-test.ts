/** A question as the test kit sees it: the message and its transport. */
export interface TestedQuestion {
  message: Buffer;
  isTcp: boolean;
  /** Called once, with undefined for no response. */
  send: (answer: Buffer | undefined) => void;
  /** Asks the name server, whose answer then goes to `send`. */
  goOn: () => void;
}

/** Handles questions instead of the name server, for the test kit. Returns false to leave one to the name server. */
export type TakeQuestion = (question: TestedQuestion) => boolean;

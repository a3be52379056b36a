/** An error whose message and HTTP status the control surface returns to its caller. */
export class TestFault extends Error {
  readonly status: number;

  constructor(status: number, message: string) {
    super(message);
    this.status = status;
  }
}

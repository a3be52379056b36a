/** A failure that the control surface tells its caller, with a status of HTTP. */
export class TestFault extends Error {
  readonly status: number;

  constructor(status: number, message: string) {
    super(message);
    this.status = status;
  }
}

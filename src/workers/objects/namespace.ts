/** A namespace of Durable Objects: the objects of one class. Its id never follows a name. */
export interface ObjectNamespace {
  /** 32 hexadecimal digits. Also the name of its folder, and the key from which ids of objects are made. */
  id: string;
  accountId: string;
  /** The script with the class; null for a class of the platform itself. */
  scriptId: string | null;
  className: string;
  /** Whether its class may use SQL. */
  isSqlite: boolean;
  createdOn: number;
}

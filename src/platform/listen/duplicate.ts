const closeOnExecDuplicate = 1030; // F_DUPFD_CLOEXEC of Linux

/**
 * Returns a function that duplicates a descriptor, so that the socket stays open when its owner closes it.
 * Undefined on systems other than Linux, and without node:ffi.
 */
export async function loadDuplicate(): Promise<((descriptor: number) => number) | undefined> {
  if (process.platform !== "linux" || !["x64", "arm64"].includes(process.arch)) return undefined;
  // Operators cannot do anything about the warning that FFI is experimental.
  const emitWarning = process.emitWarning.bind(process);
  process.emitWarning = () => {};
  try {
    const ffi = await import("node:ffi");
    const { functions } = ffi.dlopen(null, {
      fcntl: { arguments: ["int32", "int32", "int32"], return: "int32" },
    });
    return (descriptor) => functions.fcntl(descriptor, closeOnExecDuplicate, 0);
  } catch {
    return undefined;
  } finally {
    process.emitWarning = emitWarning;
  }
}

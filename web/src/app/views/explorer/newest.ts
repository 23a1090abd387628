// One task at a time: asked for while it runs, it runs once more when it has ended. So a server
// that is slower than the hand is asked for where the hand is now, never for where it was.

/**
 * Gives a function that asks for the task; settled is called when it ended and was not asked for
 * again meanwhile.
 */
export function newest(task: () => Promise<void>, settled: () => void): () => void {
  let running = false,
    again = false;
  const run = async () => {
    if (running) {
      again = true;
      return;
    }
    running = true;
    do {
      again = false;
      await task();
    } while (again);
    running = false;
    settled();
  };
  return () => void run();
}

// What the reader chose: one value, changed in one place, that views follow.

export interface Store<T> {
  get(): T;
  set(change: Partial<T>): void;
  /** Calls now and after every change of one of the fields, until what it returns is called. */
  follow(fields: (keyof T)[], then: (value: T) => void): () => void;
}

export function store<T extends object>(first: T): Store<T> {
  let value = first;
  const followers = new Set<{ fields: (keyof T)[]; then: (value: T) => void }>();
  return {
    get: () => value,
    set(change) {
      const before = value;
      const changed = (Object.keys(change) as (keyof T)[]).filter(
        (k) => !Object.is(before[k], change[k]),
      );
      if (changed.length === 0) return;
      value = { ...before, ...change };
      for (const f of [...followers])
        if (followers.has(f) && f.fields.some((k) => changed.includes(k))) f.then(value);
    },
    follow(fields, then) {
      const follower = { fields, then };
      followers.add(follower);
      then(value);
      return () => {
        followers.delete(follower);
      };
    },
  };
}

/** A store whose followers all end together: what a page or a panel holds that will be replaced. */
export interface Branch<T> extends Store<T> {
  close(): void;
}

/**
 * The same value, followed until close. What stopped following is forgotten at once, so that a page
 * whose panels are drawn again and again holds none of those it replaced.
 */
export function branch<T>(of: Store<T>): Branch<T> {
  const ends = new Set<() => void>();
  return {
    get: of.get,
    set: of.set,
    follow(fields, then) {
      const stop = of.follow(fields, then),
        end = () => {
          ends.delete(end);
          stop();
        };
      ends.add(end);
      return end;
    },
    close() {
      for (const end of ends) end();
    },
  };
}

// What is said of a panel.

export interface Lesson {
  is: string;
  good: string;
  bad: string;
  terms?: Record<string, string>;
}

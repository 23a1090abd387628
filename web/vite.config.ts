import { viteSingleFile } from "vite-plugin-singlefile";
import { defineConfig } from "vitest/config";

// The mode names the page. Reports and matrices are one self-contained file each: mailed, archived,
// opened from file://. The live UI is served, with its script and style in files of their own: its
// content security policy allows no script inside a page.
export default defineConfig(({ mode }) =>
  mode === "app"
    ? {
        build: {
          outDir: "dist/app",
          rollupOptions: { input: "app.html" },
          emptyOutDir: true,
          target: "es2022",
        },
      }
    : {
        plugins: [viteSingleFile()],
        build: {
          rollupOptions: { input: mode === "matrix" ? "matrix.html" : "report.html" },
          emptyOutDir: false,
          target: "es2022",
        },
        test: { css: true }, // a test measures the colours of theme.css
      },
);

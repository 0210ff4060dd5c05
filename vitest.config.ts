import { defineConfig } from "vitest/config";

const shared = { environment: "node" as const, testTimeout: 20_000, hookTimeout: 30_000 };

export default defineConfig({
  test: {
    projects: [
      { test: { ...shared, name: "rules", include: ["test/rules/**/*.test.ts"] } },
      {
        test: {
          ...shared,
          name: "unit",
          include: ["test/**/*.test.ts"],
          exclude: ["test/rules/**", "test/e2e/**"],
        },
      },
      {
        test: {
          ...shared,
          name: "e2e",
          include: ["test/e2e/**/*.test.ts"],
          testTimeout: 60_000,
          maxWorkers: 2,
        },
      },
    ],
  },
});

# One image for every role. Redis is not in it: name one by REDIS_URL or in the config (see docker-compose.yml).
FROM node:20-bookworm-slim AS build
WORKDIR /app
COPY package.json package-lock.json .npmrc ./
RUN npm ci
COPY tsconfig.json tsconfig.build.json ./
COPY scripts/copy-assets.mjs scripts/
COPY src src
RUN npm run build
RUN npm prune --omit=dev

FROM node:20-bookworm-slim
WORKDIR /app
COPY --from=build /app/node_modules node_modules
COPY --from=build /app/dist dist
COPY package.json ./
COPY config config
# An empty named volume takes over this folder with its owner, so nothing has to be mended at the start.
RUN mkdir -p /data/home /data/workspace && chown -R node:node /data && chmod -R go-rwx /data \
 && ln -s /app/dist/main.js /usr/local/bin/nanogate
ENV NODE_ENV=production NANOGATE_HOME=/data/home
VOLUME /data
USER node
EXPOSE 8765
# Node itself asks: the image has no curl. It writes nothing.
HEALTHCHECK --interval=10s --timeout=5s --start-period=30s --retries=3 \
  CMD ["node", "-e", "fetch('http://127.0.0.1:8765/healthz').then((r) => process.exit(r.ok ? 0 : 1), () => process.exit(1))"]
ENTRYPOINT ["node", "dist/main.js"]
CMD ["gateway"]

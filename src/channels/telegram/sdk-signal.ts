/**
 * Signals as the SDK's types want them: it declares a class of its own where it takes any. Invariant: the very same
 * signal is handed on.
 */
import type { Api } from "grammy";

type SdkSignal = NonNullable<Parameters<Api["raw"]["getMe"]>[0]>;

/** This signal, for a call of the SDK. */
export function sdkSignal(signal: AbortSignal): SdkSignal {
  return signal as SdkSignal;
}

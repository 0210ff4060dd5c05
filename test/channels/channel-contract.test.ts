/** The contract of all platform channels over the one in memory: what it asks for is what the manager does. */
import { channelContract } from "../contract/channel.js";
import { openRecordingHarness } from "../fakes/recording-platform.js";

channelContract("in memory", openRecordingHarness);

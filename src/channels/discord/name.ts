/** The channel's name everywhere. In a file of its own, so that naming the channel loads nothing else of it. */

export const DISCORD = "discord";

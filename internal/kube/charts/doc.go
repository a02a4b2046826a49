// SPDX-License-Identifier: Apache-2.0

// Package charts renders Helm charts with Helm's own library. A chart is a program, and whoever
// may write in a namespace writes it: so it is rendered by a process of its own that has no
// environment, opens no file and no connection, and ends when its memory or its time is used up.
package charts

// SPDX-License-Identifier: Apache-2.0

// Package pools implements weir pause, resume and retry with the caller's permissions. A paused BackendPool is not
// changed in Azure.
package pools

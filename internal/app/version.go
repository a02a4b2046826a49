// SPDX-License-Identifier: Apache-2.0

package app

// Version is stamped at build time.
var Version = "dev"

// SPDX-License-Identifier: Apache-2.0

package process

// Version is set at build time.
var Version = "dev"

// SPDX-License-Identifier: Apache-2.0

// Package removal decides when addresses of Services may be taken away that nobody has asked
// to give up. A flag, a setting or a new version that takes many away at once is a mistake
// until a person says that it is none: an address that is given back to Azure cannot be had
// again. It decides, too, when members may leave their pools although watches of the API server are broken.
//
//	removal.go  addresses of Services
//	watches.go  members of pools
package removal

// SPDX-License-Identifier: Apache-2.0

// Package removal prevents mass removals that were not requested. If a flag, setting or new version
// would release many addresses of Services at once, they are kept until the user confirms, because
// an address returned to Azure cannot be recovered. Members stay in their pools while watches of
// the API server are broken.
package removal

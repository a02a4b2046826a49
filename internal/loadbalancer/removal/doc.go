// SPDX-License-Identifier: Apache-2.0

// Package removal holds mass removals until the user confirms: if a flag, setting or new version
// would release many addresses of Services, because they cannot be recovered from Azure. It also
// keeps members in their pools while watches of the API server are broken.
package removal

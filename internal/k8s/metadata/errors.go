// SPDX-License-Identifier: Apache-2.0

package metadata

import "errors"

var (
	// ErrDeleted means the BackendPool was deleted, or recreated with another UID.
	ErrDeleted = errors.New("the BackendPool was deleted")
	// ErrConflict means the object has another resource version.
	ErrConflict = errors.New("the object has changed")
)

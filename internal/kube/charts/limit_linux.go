// SPDX-License-Identifier: Apache-2.0

package charts

import (
	"errors"

	"golang.org/x/sys/unix"
)

// limit takes from this process what rendering has no need of, for good.
func limit() error {
	set := func(resource int, most uint64) error {
		return unix.Setrlimit(resource, &unix.Rlimit{Cur: most, Max: most})
	}
	return errors.Join(
		set(unix.RLIMIT_CORE, 0), // or what a Secret says would be in a file
		set(unix.RLIMIT_FSIZE, 0),
		set(unix.RLIMIT_DATA, mostMemory),
		set(unix.RLIMIT_CPU, mostSeconds),
		set(unix.RLIMIT_NOFILE, 0), // what is open stays open; no file, and no connection, is opened any more
	)
}

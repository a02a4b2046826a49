// SPDX-License-Identifier: Apache-2.0

package charts

import (
	"errors"

	"golang.org/x/sys/unix"
)

// setLimits permanently limits this process.
func setLimits() error {
	set := func(resource int, value uint64) error {
		return unix.Setrlimit(resource, &unix.Rlimit{Cur: value, Max: value})
	}
	return errors.Join(
		set(unix.RLIMIT_CORE, 0), // a core file would contain secrets
		set(unix.RLIMIT_FSIZE, 0),
		set(unix.RLIMIT_DATA, maxMemory),
		set(unix.RLIMIT_CPU, maxSeconds),
		set(unix.RLIMIT_NOFILE, 0), // nothing more can be opened
	)
}

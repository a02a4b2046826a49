// SPDX-License-Identifier: Apache-2.0

package process

import (
	"os/exec"
	"syscall"
)

// Errors mean that the group has ended.

func terminateGroup(cmd *exec.Cmd) { _ = syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM) }

func killGroup(cmd *exec.Cmd) { _ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }

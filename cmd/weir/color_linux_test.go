// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
)

// openTerminal returns a pseudoterminal.
func openTerminal(t *testing.T) *os.File {
	t.Helper()
	control, err := os.OpenFile("/dev/ptmx", os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = control.Close() })
	if err := unix.IoctlSetPointerInt(int(control.Fd()), unix.TIOCSPTLCK, 0); err != nil {
		t.Fatal(err)
	}
	n, err := unix.IoctlGetInt(int(control.Fd()), unix.TIOCGPTN)
	if err != nil {
		t.Fatal(err)
	}
	terminal, err := os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = terminal.Close() })
	return terminal
}

func openFile(t *testing.T) *os.File {
	t.Helper()
	file, err := os.Create(filepath.Join(t.TempDir(), "out"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = file.Close() })
	return file
}

// restoreStdout restores os.Stdout, which a test replaces, when the test ends.
func restoreStdout(t *testing.T) {
	t.Helper()
	stdout := os.Stdout
	t.Cleanup(func() { os.Stdout = stdout })
}

// Only a terminal has a width.
func TestWidthIsThatOfTheTerminal(t *testing.T) {
	terminal := openTerminal(t)
	if err := unix.IoctlSetWinsize(int(terminal.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Row: 24, Col: 93}); err != nil {
		t.Fatal(err)
	}
	file := openFile(t)
	restoreStdout(t)
	for out, want := range map[*os.File]int{terminal: 93, file: 0} {
		os.Stdout = out
		if got := terminalWidth(); got != want {
			t.Errorf("%s: width %d, want %d", out.Name(), got, want)
		}
	}
}

// Colors are for terminals that have them, unless NO_COLOR is set.
func TestColorsAreForTerminals(t *testing.T) {
	terminal := openTerminal(t)
	file := openFile(t)
	restoreStdout(t)
	for _, tt := range []struct {
		out           *os.File
		noColor, kind string
		want          bool
	}{
		{terminal, "", "xterm", true},
		{terminal, "1", "xterm", false},
		{terminal, "", "dumb", false},
		{file, "", "xterm", false},
	} {
		t.Setenv("NO_COLOR", tt.noColor)
		t.Setenv("TERM", tt.kind)
		os.Stdout = tt.out
		if got := supportsColor(); got != tt.want {
			t.Errorf("%+v: colors %v", tt, got)
		}
	}
}

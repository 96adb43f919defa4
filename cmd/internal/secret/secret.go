// Package secret reads passwords from files, the only way in which this project takes them: a flag or an environment
// variable would show in process lists, in --help and in crash reports. It keeps nothing.
package secret

import (
	"errors"
	"fmt"
	"os"
	"strings"
)

// FromFile is the content of the file without the line feeds at its end. An empty password is an error: a file that was
// never filled is far more likely than a user without password. Errors never show the content.
func FromFile(path string) (string, error) {
	raw, err := os.ReadFile(path)
	if err != nil {
		return "", fmt.Errorf("read password: %w", err)
	}
	password := strings.TrimRight(string(raw), "\r\n")
	if password == "" {
		return "", errors.New("read password: " + path + " is empty")
	}
	return password, nil
}

// Check says what is wrong with the file as the source of a password.
func Check(path string) error {
	_, err := FromFile(path)
	return err
}

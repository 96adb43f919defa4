//go:build !race

package site

const racing = false

package python

// sometimes are the modules of the standard library that not every version from
// 3.10 to 3.13 has: the first and the last minor version that does.
var sometimes = []struct {
	first, last int
	modules     map[string]bool
}{
	{10, 10, setOf(`binhex`)},
	{10, 11, setOf(`_bootsubprocess _sha256 _sha512 asynchat asyncore distutils imp smtpd`)},
	{10, 12, setOf(`_crypt _msi aifc audioop cgi cgitb chunk crypt imghdr lib2to3 mailcap msilib nis nntplib ossaudiodev pipes sndhdr
	spwd sunau telnetlib uu xdrlib`)},
	{11, 13, setOf(`_tokenize _typing tomllib`)},
	{12, 13, setOf(`_pydatetime _pylong _sha2`)},
	{13, 13, setOf(`_android_support _colorize _interpchannels _interpqueues _interpreters _ios_support _opcode_metadata _pyrepl
	_suggestions _sysconfig _wmi`)},
}

// IsStandard reports whether a module belongs to the standard library of Python
// 3.minor, from 3.10 to 3.13; of any of them where minor is 0. A submodule does
// as its package does. Source: sys.stdlib_module_names of 3.10.13, 3.11.7, 3.12.1
// and 3.13.0.
func IsStandard(module string, minor int) bool {
	root := rootOf(module)
	if always[root] {
		return true
	}
	for _, group := range sometimes {
		if group.modules[root] {
			return minor == 0 || minor >= group.first && minor <= group.last
		}
	}
	return false
}

// always are the modules that each of these versions has.
var always = setOf(`
	abc antigravity argparse array ast asyncio atexit base64 bdb binascii bisect builtins bz2 cProfile calendar cmath cmd
	code codecs codeop collections colorsys compileall concurrent configparser contextlib contextvars copy copyreg csv
	ctypes curses dataclasses datetime dbm decimal difflib dis doctest email encodings ensurepip enum errno faulthandler
	fcntl filecmp fileinput fnmatch fractions ftplib functools gc genericpath getopt getpass gettext glob graphlib grp
	gzip hashlib heapq hmac html http idlelib imaplib importlib inspect io ipaddress itertools json keyword linecache
	locale logging lzma mailbox marshal math mimetypes mmap modulefinder msvcrt multiprocessing netrc nt ntpath
	nturl2path numbers opcode operator optparse os pathlib pdb pickle pickletools pkgutil platform plistlib poplib posix
	posixpath pprint profile pstats pty pwd py_compile pyclbr pydoc pydoc_data pyexpat queue quopri random re readline
	reprlib resource rlcompleter runpy sched secrets select selectors shelve shlex shutil signal site smtplib socket
	socketserver sqlite3 sre_compile sre_constants sre_parse ssl stat statistics string stringprep struct subprocess
	symtable sys sysconfig syslog tabnanny tarfile tempfile termios textwrap this threading time timeit tkinter token
	tokenize trace traceback tracemalloc tty turtle turtledemo types typing unicodedata unittest urllib uuid venv
	warnings wave weakref webbrowser winreg winsound wsgiref xml xmlrpc zipapp zipfile zipimport zlib zoneinfo

	__future__ _abc _aix_support _ast _asyncio _bisect _blake2 _bz2 _codecs _codecs_cn _codecs_hk _codecs_iso2022
	_codecs_jp _codecs_kr _codecs_tw _collections _collections_abc _compat_pickle _compression _contextvars _csv _ctypes
	_curses _curses_panel _datetime _dbm _decimal _elementtree _frozen_importlib _frozen_importlib_external _functools
	_gdbm _hashlib _heapq _imp _io _json _locale _lsprof _lzma _markupbase _md5 _multibytecodec _multiprocessing _opcode
	_operator _osx_support _overlapped _pickle _posixshmem _posixsubprocess _py_abc _pydecimal _pyio _queue _random
	_scproxy _sha1 _sha3 _signal _sitebuiltins _socket _sqlite3 _sre _ssl _stat _statistics _string _strptime _struct
	_symtable _thread _threading_local _tkinter _tracemalloc _uuid _warnings _weakref _weakrefset _winapi _zoneinfo
`)

"""What a frozen application needs of ragspan besides its modules: words of languages, templates of reports."""

from PyInstaller.utils.hooks import collect_data_files

datas = collect_data_files("ragspan")
